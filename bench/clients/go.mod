module tidegate.example/bench/clients

go 1.25
