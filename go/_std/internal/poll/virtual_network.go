// Virtual time: Batkube's count of what a program does to its connections. A
// program whose clock is granted a stretch of time may use it up by itself only
// while nobody else can have noticed it.

package poll

import "syscall"

// Both are in runtime/virtual_network.go.
func vtWrote()
func vtConnected(fd int32) bool

func (fd *FD) vtTouch() {
	if !fd.isFile {
		vtWrote()
	}
}

// VirtualConnect wraps connect(2). In a deterministic program the connection
// stands or has failed when it returns: how long the kernel takes must not
// decide what runs next.
func VirtualConnect(connect func(int, syscall.Sockaddr) error, fd int, to syscall.Sockaddr) error {
	vtWrote()
	err := connect(fd, to)
	if err == syscall.EINPROGRESS && vtConnected(int32(fd)) {
		return connect(fd, to)
	}
	return err
}
