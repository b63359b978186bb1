package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// parent starts a program that was built like itself, and that must not take its parent's page for its own.
func parent() {
	if len(os.Args) > 2 {
		fmt.Println("child in this century:", time.Now().Year() > 2020)
		return
	}
	output, err := exec.Command(os.Args[0], "parent", "child").CombinedOutput()
	fmt.Print(string(output), "error: ", err, "\nparent: ", time.Now().UTC().Year(), "\n")
}
