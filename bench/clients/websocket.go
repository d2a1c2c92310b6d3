package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
)

// masking says which side writes a frame: RFC 6455, section 5.1, has clients
// mask and servers not.
type masking int

const (
	unmasked masking = iota
	masked
)

// maskKey is fixed: masking here only has to be undone rightly.
var maskKey = [4]byte{0x5a, 0xa5, 0x3c, 0xc3}

// webSocketAccept answers a handshake key (RFC 6455, section 4.2.2).
func webSocketAccept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// writeFrame sends a short payload as one final text frame (RFC 6455, section 5.2).
func writeFrame(to io.Writer, payload []byte, side masking) error {
	if len(payload) > 125 {
		return errors.New("payload too long for a short frame")
	}
	frame := []byte{0x81, byte(len(payload))}
	if side == masked {
		frame[1] |= 0x80
		frame = append(frame, maskKey[:]...)
		for i, octet := range payload {
			frame = append(frame, octet^maskKey[i%4])
		}
	} else {
		frame = append(frame, payload...)
	}
	_, err := to.Write(frame)
	return err
}

// readFrame takes one short text frame, masked or not.
func readFrame(from *bufio.Reader) ([]byte, error) {
	var head [2]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	length := head[1] & 0x7f
	if head[0] != 0x81 || length > 125 {
		return nil, errors.New("not a short text frame")
	}
	var key [4]byte
	if head[1]&0x80 != 0 {
		if _, err := io.ReadFull(from, key[:]); err != nil {
			return nil, err
		}
	}
	payload := make([]byte, length)
	if _, err := io.ReadFull(from, payload); err != nil {
		return nil, err
	}
	for i := range payload {
		payload[i] ^= key[i%4]
	}
	return payload, nil
}
