module example.org/teams

go 1.24
