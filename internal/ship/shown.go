package ship

// Masker hides secrets in lines that are shown and not sent, by the same masks:
// the built-in ones and those of the settings.
func Masker(own []Mask) func(line string) string { return newMasker(own).mask }
