package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// parent starts another program with the overlay, which must not use the page of its parent.
func parent() {
	if len(os.Args) > 2 {
		fmt.Println("child in this century:", time.Now().Year() > 2020)
		return
	}
	output, err := exec.Command(os.Args[0], "parent", "child").CombinedOutput()
	fmt.Print(string(output), "error: ", err, "\nparent: ", time.Now().UTC().Year(), "\n")
}
