package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// repeatResult is what one request, sent again and again, came to.
type repeatResult struct {
	Statuses map[int]int    `json:"statuses"`
	Failures map[string]int `json:"failures"`
	Seconds  float64        `json:"seconds"`
	// Milliseconds from the first byte sent to the last byte received, by percentile.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// repeat sends the bytes of a file over keep-alive connections: a number of
// times, so that all of it is done when it ends, or for a while. With an
// interval, a connection begins a request each time it has passed, and a late
// one counts from when it should have begun.
func repeat(arguments []string) error {
	flags := flag.NewFlagSet("repeat", flag.ExitOnError)
	address := flags.String("address", "", "where the server listens")
	file := flags.String("file", "", "the request, as it goes over the wire")
	count := flags.Int("count", 0, "how many times, over all connections")
	duration := flags.Duration("duration", 0, "for how long, if there is no count")
	connections := flags.Int("connections", 1, "connections")
	interval := flags.Duration("interval", 0, "between the beginnings of a connection's requests")
	flags.Parse(arguments)
	raw, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	end := time.Now().Add(*duration)
	result := repeatResult{Statuses: map[int]int{}, Failures: map[string]int{}}
	var latencies []time.Duration
	var lock sync.Mutex
	var group sync.WaitGroup
	start := time.Now()
	for n := range *connections {
		group.Add(1)
		go func() {
			defer group.Done()
			sender := sender{to: target{address: *address}, number: n}
			defer sender.close()
			next := time.Now().Add(*interval * time.Duration(n) / time.Duration(*connections))
			for i := n; (*count > 0 && i < *count) || (*count == 0 && time.Now().Before(end)); i += *connections {
				if *interval > 0 {
					time.Sleep(time.Until(next))
				} else {
					next = time.Now()
				}
				status, err := sender.exchange(raw)
				took := time.Since(next)
				next = next.Add(*interval)
				lock.Lock()
				if err != nil {
					result.Failures[err.Error()]++
				} else {
					result.Statuses[status]++
					latencies = append(latencies, took)
				}
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	result.Seconds = time.Since(start).Seconds()
	slices.Sort(latencies)
	at := func(share float64) float64 {
		if len(latencies) == 0 {
			return 0
		}
		return latencies[int(share*float64(len(latencies)-1))].Seconds() * 1000
	}
	result.P50, result.P99, result.Max = at(0.5), at(0.99), at(1)
	report(result)
	return nil
}

// sender keeps one connection and opens another when the server has closed it.
type sender struct {
	to     target
	number int
	conn   net.Conn
	reader *bufio.Reader
}

func (s *sender) exchange(raw []byte) (int, error) {
	if s.conn == nil {
		conn, err := s.to.dial(s.number)
		if err != nil {
			return 0, err
		}
		s.conn, s.reader = conn, bufio.NewReader(conn)
	}
	status, reusable, err := s.once(raw)
	if err != nil || !reusable {
		s.close()
	}
	return status, err
}

func (s *sender) once(raw []byte) (status int, reusable bool, err error) {
	if err := s.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, false, err
	}
	// A server may answer and close before it has read everything: what it said counts.
	_, sent := s.conn.Write(raw)
	response, err := http.ReadResponse(s.reader, nil)
	if err != nil {
		if sent != nil {
			err = sent
		}
		return 0, false, fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, false, fmt.Errorf("cut answer: %w", err)
	}
	return response.StatusCode, sent == nil && !response.Close, nil
}

func (s *sender) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
