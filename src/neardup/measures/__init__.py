"""What similarity means, one file per measure."""
