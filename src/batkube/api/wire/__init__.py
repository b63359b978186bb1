"""The protobuf wire format of Kubernetes' objects, byte for byte as Go writes it.

`encoding` and `decoding` compile each schema once into encoders and decoders of plain dictionaries. `values` handles
types with a message of their own, such as quantities and times. `protobuf.varints` has the integers of the wire format.
"""
