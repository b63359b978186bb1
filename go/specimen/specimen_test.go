package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// These tests implement the coordinator in Go: a second implementation of the page's layout, independent of
// batkube/timing/pages/clock_page.py. Run them with the overlay (go test -overlay overlay.json ./...): the programs that
// they start are this test binary itself.

const (
	start = 946684800 * int64(time.Second)
	never = 1<<63 - 1

	slotNow, slotProbe, slotLimit, slotFlags, slotSeed                = 1, 2, 3, 4, 5
	slotSeen, slotNext, slotIdles, slotJumps, slotHeap, slotLive, pid = 8, 9, 10, 12, 13, 18, 19
	slotWrote, slotGranted, slotConnects, slotSent, slotGot           = 11, 14, 15, 16, 17
	slotElsewhere, slotPort, slotForeign, slotArriving                = 23, 24, 29, 30
	pageBytes                                                         = 65536 + 2<<14

	manyThreads, deterministic = 0, 1
)

func TestMain(m *testing.M) {
	if os.Getenv("BATKUBE_PAGE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

type program struct {
	t      *testing.T
	slots  []atomic.Int64
	wake   *os.File
	ended  chan error
	output string
	probe  int64
}

func startProgram(t *testing.T, name string, flags int64, arguments ...string) *program {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "page")
	check(t, err)
	check(t, file.Truncate(pageBytes))
	mapped, err := syscall.Mmap(int(file.Fd()), 0, pageBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	check(t, err)
	output, err := os.CreateTemp(t.TempDir(), "output")
	check(t, err)
	wake, idle := eventfd(t), eventfd(t)
	slots := unsafe.Slice((*atomic.Int64)(unsafe.Pointer(&mapped[0])), 512)
	for slot, value := range map[int]int64{0: 0x334b4256, slotNow: start, slotFlags: flags, slotSeed: 1} {
		slots[slot].Store(value)
	}
	command := exec.Command(os.Args[0], append([]string{name}, arguments...)...)
	command.Env = append(os.Environ(), "BATKUBE_PAGE="+file.Name(), "BATKUBE_WAKE=3", "BATKUBE_IDLE=4")
	command.ExtraFiles = []*os.File{wake, idle}
	command.Stdout, command.Stderr = output, output
	check(t, command.Start())
	t.Cleanup(func() { command.Process.Kill() })
	d := &program{t: t, slots: slots, wake: wake, ended: make(chan error, 1), output: output.Name()}
	go func() { d.ended <- command.Wait() }()
	return d
}

func eventfd(t *testing.T) *os.File {
	number, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return os.NewFile(number, "eventfd")
}

// settle waits until the program is idle, and returns false if it ended.
func (d *program) settle() bool {
	d.t.Helper()
	d.probe++
	d.slots[slotProbe].Store(d.probe)
	one := binary.LittleEndian.AppendUint64(nil, 1)
	_, err := d.wake.Write(one)
	check(d.t, err)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		select {
		case err := <-d.ended:
			check(d.t, err)
			return false
		case <-time.After(100 * time.Microsecond):
			if d.get(slotSeen) >= d.probe {
				return true
			}
		}
	}
	d.t.Fatal("the program neither became idle nor ended")
	return false
}

func (d *program) get(slot int) int64 { return d.slots[slot].Load() }

func (d *program) read() string {
	text, err := os.ReadFile(d.output)
	check(d.t, err)
	return string(text)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// requireOverlay skips the test unless the test binary was built with the overlay.
func requireOverlay(t *testing.T) {
	t.Helper()
	d := startProgram(t, "nothing", manyThreads)
	for range 200 {
		if d.get(pid) != 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Skip("built without the overlay")
}

func TestEveryTimerIsReportedAndNothingHappensBeforeTheClockAdvances(t *testing.T) {
	requireOverlay(t)
	d := startProgram(t, "sleep", deterministic)
	for turn := range int64(5) {
		if !d.settle() || d.get(slotNext) != start+(turn+1)*2000*int64(time.Hour) {
			t.Fatalf("turn %d: next timer at %d", turn, d.get(slotNext)-start)
		}
		if lines := strings.Count(d.read(), "\n"); lines > int(turn)+1 {
			t.Fatalf("turn %d: %d lines", turn, lines)
		}
		d.slots[slotNow].Store(d.get(slotNext))
	}
	if d.settle() {
		t.Fatal("the program has not ended")
	}
}

func TestAGrantIsUsedUpWithoutAReportForEachTimer(t *testing.T) {
	requireOverlay(t)
	d := startProgram(t, "sleep", deterministic)
	d.settle()
	idles := d.get(slotIdles)
	d.slots[slotLimit].Store(never)
	if d.settle() || d.get(slotJumps) != 5 || d.get(slotIdles) > idles+1 {
		t.Fatal("jumps", d.get(slotJumps), "reports", d.get(slotIdles)-idles)
	}
	if want := fmt.Sprintln("2000-11-29T08:00:00Z", 8000*time.Hour); !strings.HasSuffix(d.read(), want) {
		t.Fatal(d.read())
	}
}

func TestGarbageIsCollectedOnRequest(t *testing.T) {
	requireOverlay(t)
	d := startProgram(t, "garbage", deterministic)
	d.settle()
	before := d.get(slotLive)
	d.slots[slotFlags].Store(1 | 2)
	d.settle()
	if d.get(slotFlags) != 1 || d.get(slotHeap) <= 0 || d.get(slotHeap) > before/10 {
		t.Fatal(before, d.get(slotFlags), d.get(slotHeap))
	}
}

// runToEnd grants unlimited time until the program ends, and returns its output.
func (d *program) runToEnd() string {
	d.t.Helper()
	for d.settle() {
		d.slots[slotGranted].Store(d.get(slotWrote))
		d.slots[slotLimit].Store(never)
	}
	return d.read()
}

func inBothModes(t *testing.T, test func(*testing.T, int64)) {
	requireOverlay(t)
	t.Run("deterministic", func(t *testing.T) { test(t, deterministic) })
	t.Run("many threads", func(t *testing.T) { test(t, manyThreads) })
}

func TestTimersStopResetAndFireOnTheVirtualClock(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode int64) {
		d := startProgram(t, "timers", mode)
		want := `stopped in time: true and again: false
3s an answer before the timeout
8s timeout
16s ticks at one second and seven
25s postponed
25s no time at all
25.000000001s a nanosecond
29.000000001s inner: context deadline exceeded
35.000000001s outer: context deadline exceeded
`
		if output := d.runToEnd(); output != want {
			t.Fatal(output)
		}
	})
}

func TestEachSleeperWakesAtItsInstantAndInOrder(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode int64) {
		d := startProgram(t, "sleepers", mode)
		if output := d.runToEnd(); output != "late 0 out of turn 0 after 33m22s\n" || d.get(slotJumps) != 2000 {
			t.Fatal(output, d.get(slotJumps))
		}
	})
}

func TestBytesOfOtherStreamsAreCountedApart(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode int64) {
		d := startProgram(t, "transfers", mode)
		output := d.runToEnd()
		if output != fmt.Sprintln(d.get(slotForeign)) || d.get(slotSent) != 0 || d.get(slotElsewhere) != 2 {
			t.Fatal(output, d.get(slotForeign), d.get(slotSent), d.get(slotElsewhere))
		}
	})
}

func TestACollectionNeitherAdvancesTheClockNorLosesATimer(t *testing.T) {
	requireOverlay(t)
	d := startProgram(t, "garbage", deterministic)
	for turn := range int64(4) {
		now, next := start+turn*int64(time.Second), start+(turn+1)*int64(time.Second)
		d.settle()
		d.slots[slotFlags].Store(deterministic | 2)
		d.settle()
		// The scavenger, which releases memory, must not have set a timer.
		if d.get(slotFlags) != deterministic || d.get(slotNow) != now || d.get(slotNext) != next {
			t.Fatal(turn, d.get(slotFlags), d.get(slotNow)-start, d.get(slotNext)-start)
		}
		d.slots[slotNow].Store(next)
	}
	if output := d.runToEnd(); output != "collections 4\n" {
		t.Fatal(output)
	}
}

func TestAGrantEndsWithTheFirstWrite(t *testing.T) {
	requireOverlay(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	d := startProgram(t, "send", deterministic, listener.Addr().String())
	d.slots[slotPort].Store(int64(listener.Addr().(*net.TCPAddr).Port))
	d.settle()
	for turn := range int64(3) {
		d.slots[slotGranted].Store(d.get(slotWrote))
		d.slots[slotLimit].Store(never)
		d.settle()
		if d.get(slotNow) != start+(turn+1)*10*int64(time.Second) || d.get(slotSent) != turn+1 {
			t.Fatal(d.get(slotNow)-start, d.get(slotSent))
		}
	}
}
