"""The base encoding of protobuf messages, for the wire format of the API and for Perfetto traces."""
