#!/bin/sh
# nginx as the gate of the wire cases: DIRECTORY HTTP1-PORT HTTP2-PORT.
# Limits and timeouts as in the runner's Tidegate; everything else as a careful administrator would.
set -eu
dir=$1 http1=$2 http2=$3
nginx=$(command -v nginx || echo /usr/sbin/nginx)
{
    cat <<EOF
worker_processes 1;
daemon off;
pid $dir/pid;
error_log $dir/error.log;
user root;
events { worker_connections 4000; }
http {
    access_log off;
    client_body_temp_path $dir/body; proxy_temp_path $dir/proxy; fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi; scgi_temp_path $dir/scgi;
    proxy_http_version 1.1;
    proxy_read_timeout 3s;
    client_header_timeout 2s;
    client_max_body_size 1m;
    proxy_request_buffering off;
    server_names_hash_max_size 8192;
    map \$http_upgrade \$wire_connection { default upgrade; '' ''; }
    proxy_set_header Host \$http_host;
    proxy_set_header Upgrade \$http_upgrade;
    proxy_set_header Connection \$wire_connection;
    proxy_set_header X-Forwarded-For \$remote_addr;
    proxy_set_header X-Forwarded-Proto \$scheme;
EOF
    number=0
    while read -r host origin; do
        name="server_name $host;" default=
        [ "$host" = "*" ] && name="server_name _;" && default=default_server
        echo "    upstream u$number { server $origin; keepalive 8; }"
        echo "    server { listen 127.0.0.1:$http1 $default; listen 127.0.0.1:$http2 http2 $default;"
        echo "        $name location / { proxy_pass http://u$number; } }"
        number=$((number + 1))
    done <"$dir/sites"
    echo "}"
} >"$dir/nginx.conf"
exec "$nginx" -c "$dir/nginx.conf" -p "$dir"
