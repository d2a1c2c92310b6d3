// Command clients holds the load clients and the origin that the measurements
// need and that wrk and h2load do not offer.
//
// Each subcommand prints its result as JSON on standard output, one object a
// line, and takes its orders as lines on standard input where it lives longer
// than one measurement. It uses the standard library only, so that building it
// needs nothing but a Go toolchain.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

var commands = map[string]func(arguments []string) error{
	"handshakes": handshakes,
	"hold":       hold,
	"fresh":      fresh,
	"origin":     origin,
	"repeat":     repeat,
	"traffic":    traffic,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clients handshakes|hold|fresh|origin|repeat|traffic [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// report writes one result line, which the harness reads.
func report(result any) {
	line, err := json.Marshal(result)
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	fmt.Println(string(line))
}
