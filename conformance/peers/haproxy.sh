#!/bin/sh
# HAProxy as the gate of the wire cases: DIRECTORY HTTP1-PORT HTTP2-PORT.
set -eu
dir=$1 http1=$2 http2=$3
{
    cat <<EOF
global
    maxconn 4000
defaults
    mode http
    timeout connect 3s
    timeout client 10s
    timeout server 3s
    timeout http-request 2s
    http-reuse always
    option forwardfor
frontend wire
    bind 127.0.0.1:$http1
    bind 127.0.0.1:$http2 proto h2
    use_backend %[req.hdr(host),field(1,:),lower,map($dir/map)] if { req.hdr(host),field(1,:),lower,map($dir/map) -m found }
    default_backend b0
EOF
    number=0
    : >"$dir/map"
    while read -r host origin; do
        printf 'backend b%s\n    server s %s\n' "$number" "$origin"
        [ "$host" = "*" ] || echo "$host b$number" >>"$dir/map"
        number=$((number + 1))
    done <"$dir/sites"
} >"$dir/haproxy.cfg"
exec haproxy -db -f "$dir/haproxy.cfg"
