module batkube.dev/virtualtime

go 1.24
