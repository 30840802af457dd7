tried=$(supervisor __probe attempt {targets})
supervisor complete --summary 'tried what is not mine' --metadata "$tried"
