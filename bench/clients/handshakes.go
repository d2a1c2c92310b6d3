package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"sync"
	"time"
)

// handshakeResult is what one run of full handshakes came to. The negotiated
// parameters are listed so that the harness can refuse to compare servers that
// chose differently.
type handshakeResult struct {
	Handshakes int            `json:"handshakes"`
	Failures   map[string]int `json:"failures"`
	Negotiated map[string]int `json:"negotiated"`
	Seconds    float64        `json:"seconds"`
}

// handshakes opens connections for a while, several at a time. Each does one
// full TLS 1.3 handshake, one request for a fixed answer, and is closed by the
// server.
func handshakes(arguments []string) error {
	flags := flag.NewFlagSet("handshakes", flag.ExitOnError)
	address := flags.String("address", "", "where the server listens")
	host := flags.String("host", "bench.test", "server name and Host")
	path := flags.String("path", "/answer", "path of the fixed answer")
	body := flags.String("body", "ok\n", "the fixed answer")
	duration := flags.Duration("duration", 4*time.Second, "how long to go on")
	concurrency := flags.Int("concurrency", 16, "connections at a time")
	flags.Parse(arguments)

	result := handshakeResult{Failures: map[string]int{}, Negotiated: map[string]int{}}
	var lock sync.Mutex
	var group sync.WaitGroup
	to := target{address: *address, host: *host, tls: true}
	start := time.Now()
	for worker := range *concurrency {
		group.Add(1)
		go func() {
			defer group.Done()
			for n := worker; time.Since(start) < *duration; n += *concurrency {
				negotiated, err := handshake(to, n, *path, *body)
				lock.Lock()
				if err != nil {
					result.Failures[err.Error()]++
				} else {
					result.Handshakes++
					result.Negotiated[negotiated]++
				}
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	result.Seconds = time.Since(start).Seconds()
	report(result)
	return nil
}

// handshake does one, and says what the server chose.
func handshake(to target, n int, path, expected string) (string, error) {
	conn, err := to.dial(n)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	state := conn.(*tls.Conn).ConnectionState()
	if state.DidResume {
		return "", fmt.Errorf("resumed a session that was never offered")
	}
	body, err := get(conn, to.host, path, "close")
	if err != nil {
		return "", err
	}
	if string(body) != expected {
		return "", fmt.Errorf("wrong body of %d bytes", len(body))
	}
	signature := state.PeerCertificates[0].PublicKeyAlgorithm.String()
	return fmt.Sprintf("%s %s %s %s", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite), state.CurveID, signature), nil
}
