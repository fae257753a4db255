package layered

const roleVariable = "LAYERED_TEST_ROLE"

func play(string) int { return 2 }
