// Virtual time: maps whose order does not depend on addresses.
//
// The hash of a key determines its position in a map, and so the iteration
// order. The hash of a pointer is that of its address, and addresses differ a
// little between runs: threads start in real time and allocate memory, and so
// does text of different length that a program reads from its machine, such as
// its process id. In a map whose keys contain addresses, the search for a key or
// for a free slot therefore starts at the table's first group, not at the
// position that the hash selects. The entries are thus in insertion order. The
// cost is small, since eight keys are compared at once and a table has at most
// 128 groups of eight. A map of more than 896 entries has several tables; the
// hash still selects the table.

package maps

import (
	"internal/abi"
	"unsafe"
)

// VirtualOrder is set in deterministic mode.
var VirtualOrder bool

// vtStart returns the position at which the search for a key starts.
func vtStart(key *abi.Type, hash uintptr) uintptr {
	if VirtualOrder && key.PtrBytes != 0 && vtHoldsAddress(key) {
		return 0
	}
	return h1(hash)
}

// vtHoldsAddress returns whether the hash of a key of type t may depend on an
// address.
func vtHoldsAddress(t *abi.Type) bool {
	switch t.Kind() {
	case abi.Pointer, abi.UnsafePointer, abi.Chan, abi.Interface:
		return true
	case abi.Array:
		return vtHoldsAddress((*abi.ArrayType)(unsafe.Pointer(t)).Elem)
	case abi.Struct:
		for _, field := range (*abi.StructType)(unsafe.Pointer(t)).Fields {
			if field.Typ.PtrBytes != 0 && vtHoldsAddress(field.Typ) {
				return true
			}
		}
	}
	return false
}
