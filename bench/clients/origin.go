package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// originBody is what GET answers with: large enough to need several writes.
var originBody = bytes.Repeat([]byte("tidegate"), 2048)

// origin is one upstream server of the survival run. Every answer names its
// server, and every POST is entered into a ledger before it is answered, so
// that a request executed twice, or executed and not answered, can be told.
func origin(arguments []string) error {
	flags := flag.NewFlagSet("origin", flag.ExitOnError)
	address := flags.String("address", "", "where to listen")
	name := flags.String("name", "", "the server's name")
	ledgerPath := flags.String("ledger", "", "file that takes one line per POST")
	flags.Parse(arguments)

	ledger, err := os.OpenFile(*ledgerPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", *address)
	if err != nil {
		return err
	}
	report(map[string]string{"listening": *address})

	mux := http.NewServeMux()
	mux.HandleFunc("GET /body", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(originBody)))
		w.Write(originBody)
	})
	// A slow answer keeps a request begun for a while, so that a server is
	// always in the middle of some when it is killed or drained.
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(originBody)))
		w.Write(originBody[:len(originBody)/2])
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
		w.Write(originBody[len(originBody)/2:])
	})
	mux.HandleFunc("POST /ledger", func(w http.ResponseWriter, r *http.Request) {
		entry, err := io.ReadAll(io.LimitReader(r.Body, 256))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(ledger, "%s\n", entry)
		w.Write(entry)
	})
	mux.HandleFunc("GET /socket", echoFrames)
	server := http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Server", *name)
			mux.ServeHTTP(w, r)
		}),
		IdleTimeout: 10 * time.Minute,
	}
	return server.Serve(listener)
}

// echoFrames upgrades to a WebSocket and sends every frame back.
func echoFrames(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if key == "" {
		http.Error(w, "not a WebSocket handshake", http.StatusBadRequest)
		return
	}
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nX-Server: %s\r\n\r\n",
		webSocketAccept(key), w.Header().Get("X-Server"))
	reader := bufio.NewReader(buffered)
	for {
		payload, err := readFrame(reader)
		if err != nil {
			return
		}
		if err := writeFrame(conn, payload, unmasked); err != nil {
			return
		}
	}
}
