module kshim/golines

go 1.26
