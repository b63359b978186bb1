"""The protobuf wire format of Kubernetes' objects, byte for byte as Go writes it.

`encoding` and `decoding` compile each schema once into a small program (who is field 7, how is it written, what is
written when it is missing) and run that over plain dictionaries; `values` knows the types that are more than a number
or a text, such as quantities and times; `varints` the integers of which everything else consists.
"""
