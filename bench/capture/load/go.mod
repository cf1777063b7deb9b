module sluice/bench/load

go 1.24
