"""The service: indexes as collections over HTTP, with tokens, one writer each, streams and metrics."""
