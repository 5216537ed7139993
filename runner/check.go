package runner

// CheckProjects tells whether the list of Projects in a Runner's directory can be read; one
// that is not there yet can. It changes nothing.
func CheckProjects(dir string) error {
	_, err := openRegistry(dir, nil)
	return err
}
