-- Asks for the names in a file in turn, a line each. The requests are prepared once; picking one
-- costs the load generator the same for one name as for many.
dofile(os.getenv("TIDEGATE_BENCH_REPORT"))

local requests = {}
local next_request = 0

function init(arguments)
    for host in io.lines(arguments[1]) do
        wrk.headers["Host"] = host
        requests[#requests + 1] = wrk.format("GET")
    end
end

function request()
    next_request = next_request % #requests + 1
    return requests[next_request]
end
