package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// patience bounds every wait of a client. A server that needs longer on
// loopback has failed.
const patience = 20 * time.Second

// target says where and how a client connects.
type target struct {
	address string
	host    string
	tls     bool
}

// sourceAddresses is the number of loopback addresses that clients spread
// their connections over: one address has 28,000 ports, of which closed
// connections keep some for a minute.
const sourceAddresses = 16

// dial opens connection number n, through TLS if the target says so.
//
// TLS offers X25519 and TLS 1.3 only and never a session, so that each
// handshake is full and costs every server the same exchange.
func (t target) dial(n int) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout:   patience,
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%sourceAddresses))},
	}
	conn, err := dialer.Dial("tcp4", t.address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		conn.Close()
		return nil, err
	}
	if !t.tls {
		return conn, nil
	}
	secured := tls.Client(conn, t.tlsConfig())
	if err := secured.Handshake(); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

func (t target) tlsConfig() *tls.Config {
	return &tls.Config{
		ServerName:             t.host,
		InsecureSkipVerify:     true, // the certificate is made for the run; the signature is checked all the same
		MinVersion:             tls.VersionTLS13,
		CurvePreferences:       []tls.CurveID{tls.X25519},
		SessionTicketsDisabled: true,
	}
}

// get sends one request on an open connection and reads the whole answer.
func get(conn net.Conn, host, path, connection string) (body []byte, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\n\r\n", path, host, connection)
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 2048), nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", response.StatusCode)
	}
	return body, nil
}
