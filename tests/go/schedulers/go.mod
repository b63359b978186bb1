module batkube/wayward

go 1.24
