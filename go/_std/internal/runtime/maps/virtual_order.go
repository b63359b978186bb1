// Virtual time: maps whose order does not depend on addresses.
//
// Where a key stands in a map follows from its hash, and so does the order in
// which the map is gone through. The hash of a pointer is that of its address,
// and addresses differ a little from run to run: threads are made in real time
// and take memory, and so does what a program reads of its machine, such as the
// number of its process. Therefore a map whose keys hold addresses looks for a
// key, and for room for a new one, from its table's first group on, not from
// where the hash says: its entries stand in the order in which they came. The
// price is small, since eight keys are looked at in one go and a table has at
// most 128 groups of them. Of several tables, which a map of more than 896
// entries has, the hash still chooses one.

package maps

import (
	"internal/abi"
	"unsafe"
)

// VirtualOrder is set in a program that is to take the same course every time.
var VirtualOrder bool

// vtStart returns where to begin looking for a key of this type and hash.
func vtStart(key *abi.Type, hash uintptr) uintptr {
	if VirtualOrder && key.PtrBytes != 0 && vtHoldsAddress(key) {
		return 0
	}
	return h1(hash)
}

// vtHoldsAddress reports whether the hash of such a key may be of an address.
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
