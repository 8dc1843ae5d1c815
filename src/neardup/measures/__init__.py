"""What similarity means, one file a measure."""
