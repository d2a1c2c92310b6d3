package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// failure is one request that was not answered in full and rightly.
type failure struct {
	Phase    string `json:"phase"`
	Protocol string `json:"protocol"`
	Request  string `json:"request"`
	// Server is set when the head of the answer had arrived: that server had
	// begun to answer.
	Server string  `json:"server"`
	Error  string  `json:"error"`
	At     float64 `json:"at"`
}

// trafficResult is what a survival run's clients saw. Served counts whole
// answers by phase and then by server.
type trafficResult struct {
	Requests    map[string]int            `json:"requests"`
	Connections map[string]int            `json:"connections"`
	Served      map[string]map[string]int `json:"served"`
	Failures    []failure                 `json:"failures"`
}

// trafficRun is the state that all clients of one run share.
type trafficRun struct {
	plain   target
	secured target
	pause   time.Duration
	start   time.Time
	phase   atomic.Value
	posts   atomic.Bool
	ended   chan struct{}

	lock   sync.Mutex
	result trafficResult
}

// traffic sends a bounded load over HTTP/1.1, HTTP/2 and WebSockets and counts
// every request that fails. No client here tries a request twice: an HTTP/1.1
// connection that is closed without notice under a request is a failure too.
//
// Orders: "phase NAME" marks what follows, and opens one more WebSocket;
// "posts off" sends no more POSTs; the end of input ends the run.
func traffic(arguments []string) error {
	flags := flag.NewFlagSet("traffic", flag.ExitOnError)
	address := flags.String("address", "", "plain listener")
	securedAddress := flags.String("tls-address", "", "TLS listener, for HTTP/2")
	host := flags.String("host", "bench.test", "server name and Host")
	http1 := flags.Int("http1", 16, "HTTP/1.1 connections")
	http2 := flags.Int("http2", 4, "HTTP/2 connections")
	streams := flags.Int("streams", 8, "streams of each HTTP/2 connection")
	pause := flags.Duration("pause", 10*time.Millisecond, "between two requests of a client")
	flags.Parse(arguments)

	run := &trafficRun{
		plain:   target{address: *address, host: *host},
		secured: target{address: *securedAddress, host: *host, tls: true},
		pause:   *pause,
		start:   time.Now(),
		ended:   make(chan struct{}),
		result: trafficResult{
			Requests:    map[string]int{},
			Connections: map[string]int{},
			Served:      map[string]map[string]int{},
			Failures:    []failure{},
		},
	}
	run.phase.Store("start")
	run.posts.Store(true)

	var group sync.WaitGroup
	launch := func(client func()) {
		group.Add(1)
		go func() {
			defer group.Done()
			client()
		}()
	}
	for n := range *http1 {
		launch(func() { run.http1Client(n) })
	}
	for n := range *http2 {
		transport := run.http2Transport(n)
		// The first request opens the connection that all the streams then find.
		server, err := http2Exchange(transport, run.secured.host, "/body")
		run.finished("http2", "start", "GET /body", server, err)
		for stream := range *streams {
			launch(func() { run.http2Client(transport, n, stream) })
		}
	}
	sockets := 0
	openSocket := func() {
		n := sockets
		sockets++
		launch(func() { run.socketClient(n) })
	}
	openSocket()

	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		switch order := orders.Text(); {
		case strings.HasPrefix(order, "phase "):
			run.phase.Store(strings.TrimPrefix(order, "phase "))
			openSocket()
		case order == "posts off":
			run.posts.Store(false)
		default:
			return fmt.Errorf("unknown order %q", order)
		}
	}
	close(run.ended)
	group.Wait()
	report(run.result)
	return orders.Err()
}

func (run *trafficRun) over() bool {
	select {
	case <-run.ended:
		return true
	case <-time.After(run.pause):
		return false
	}
}

func (run *trafficRun) connected(protocol string) {
	run.lock.Lock()
	defer run.lock.Unlock()
	run.result.Connections[protocol]++
}

// finished books one request under the phase it began in.
func (run *trafficRun) finished(protocol, phase, request, server string, err error) {
	run.lock.Lock()
	defer run.lock.Unlock()
	run.result.Requests[protocol]++
	if err != nil {
		run.result.Failures = append(run.result.Failures, failure{
			Phase: phase, Protocol: protocol, Request: request, Server: server,
			Error: err.Error(), At: time.Since(run.start).Seconds(),
		})
		return
	}
	if protocol == "websocket" {
		return // a tunnel stays with the server it was opened to
	}
	if run.result.Served[phase] == nil {
		run.result.Served[phase] = map[string]int{}
	}
	run.result.Served[phase][server]++
}

// choose picks the nth request of a client: mostly short ones, some slow, and
// on HTTP/1.1 some that must not be executed twice.
func (run *trafficRun) choose(client, n int) (method, path, body string) {
	switch {
	case n%5 == 4:
		return "GET", "/slow", ""
	case n%5 == 2 && run.posts.Load():
		return "POST", "/ledger", fmt.Sprintf("client-%d-request-%d", client, n)
	default:
		return "GET", "/body", ""
	}
}

func (run *trafficRun) http1Client(client int) {
	var conn net.Conn
	var reader *bufio.Reader
	for n := 0; !run.over(); n++ {
		method, path, body := run.choose(client, n)
		phase := run.phase.Load().(string)
		if conn == nil {
			var err error
			if conn, err = run.plain.dial(client); err != nil {
				run.finished("http1", phase, "connect", "", err)
				continue
			}
			reader = bufio.NewReader(conn)
			run.connected("http1")
		}
		server, reusable, err := http1Exchange(conn, reader, run.plain.host, method, path, body)
		run.finished("http1", phase, fmt.Sprint(method, " ", path, " ", body), server, err)
		if err != nil || !reusable {
			conn.Close()
			conn = nil
		}
	}
	if conn != nil {
		conn.Close()
	}
}

// http1Exchange does one request and says which server began to answer it and
// whether the connection may carry another.
func http1Exchange(conn net.Conn, reader *bufio.Reader, host, method, path, body string) (server string, reusable bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", false, err
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, host)
	if method == "POST" {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(conn, head+"\r\n"+body); err != nil {
		return "", false, err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return "", false, fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	server = response.Header.Get("X-Server")
	return server, !response.Close, checkAnswer(response, body)
}

// checkAnswer reads the answer and compares it with what the origin must have sent.
func checkAnswer(response *http.Response, posted string) error {
	expected := originBody
	if posted != "" {
		expected = []byte(posted)
	}
	received, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("cut answer: %w", err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", response.StatusCode)
	case !bytes.Equal(received, expected):
		return fmt.Errorf("wrong body of %d bytes", len(received))
	}
	return nil
}

// http2Transport keeps one HTTP/2 connection, opened anew when the gate says
// GOAWAY.
func (run *trafficRun) http2Transport(n int) *http.Transport {
	return &http.Transport{
		DialContext: func(_ context.Context, _, _ string) (net.Conn, error) {
			run.connected("http2")
			plain := run.secured
			plain.tls = false
			conn, err := plain.dial(n)
			if err != nil {
				return nil, err
			}
			return conn, conn.SetDeadline(time.Time{})
		},
		TLSClientConfig:   run.secured.tlsConfig(),
		ForceAttemptHTTP2: true,
	}
}

func (run *trafficRun) http2Client(transport *http.Transport, client, stream int) {
	for n := stream; !run.over(); n++ {
		_, path, _ := run.choose(client, n)
		if path == "/ledger" {
			path = "/body"
		}
		phase := run.phase.Load().(string)
		server, err := http2Exchange(transport, run.secured.host, path)
		run.finished("http2", phase, "GET "+path, server, err)
	}
}

func http2Exchange(transport *http.Transport, host, path string) (server string, err error) {
	limit, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(limit, "GET", "https://"+host+path, nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	server = response.Header.Get("X-Server")
	if response.ProtoMajor != 2 {
		return server, fmt.Errorf("answered over %s", response.Proto)
	}
	return server, checkAnswer(response, "")
}

// socketClient keeps one WebSocket open to the end of the run. The tunnel ends
// with its server, so one to a killed server is booked with that server's name.
func (run *trafficRun) socketClient(n int) {
	phase := run.phase.Load().(string)
	conn, reader, server, err := openWebSocket(run.plain, n)
	if err != nil {
		run.finished("websocket", phase, "open", "", err)
		return
	}
	defer conn.Close()
	run.connected("websocket")
	for message := 0; !run.over(); message++ {
		phase = run.phase.Load().(string)
		payload := []byte(fmt.Sprintf("socket-%d-message-%d", n, message))
		err := echoOnce(conn, reader, payload)
		run.finished("websocket", phase, string(payload), server, err)
		if err != nil {
			return
		}
	}
}

func openWebSocket(to target, n int) (conn net.Conn, reader *bufio.Reader, server string, err error) {
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	if conn, err = to.dial(n); err != nil {
		return nil, nil, "", err
	}
	fmt.Fprintf(conn, "GET /socket HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", to.host, key)
	reader = bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err == nil && response.Header.Get("Sec-WebSocket-Accept") != webSocketAccept(key) {
		err = fmt.Errorf("wrong Sec-WebSocket-Accept")
	}
	if err != nil {
		conn.Close()
		return nil, nil, "", err
	}
	return conn, reader, response.Header.Get("X-Server"), nil
}

func echoOnce(conn net.Conn, reader *bufio.Reader, payload []byte) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := writeFrame(conn, payload, masked); err != nil {
		return err
	}
	echoed, err := readFrame(reader)
	if err == nil && !bytes.Equal(echoed, payload) {
		err = fmt.Errorf("echoed %q", echoed)
	}
	return err
}
