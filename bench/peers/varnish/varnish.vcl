# Varnish as it is, in front of one server. Placeholders between @ signs are filled in by
# bench/harness/contestants.py.
vcl 4.1;

backend app {
    .host = "@ORIGIN_HOST@";
    .port = "@ORIGIN_PORT@";
}
