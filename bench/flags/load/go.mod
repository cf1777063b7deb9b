module sluice/bench/flags/load

go 1.21
