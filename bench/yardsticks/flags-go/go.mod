module flags-go

go 1.24
