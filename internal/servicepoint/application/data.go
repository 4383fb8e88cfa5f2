package application

import (
	"os"
	"strconv"
)

// DataVariable is the environment variable with the number of the file descriptor of the folder for the data of an application. A service
// point passes DataDescriptor to the applications that keep data.
const (
	DataVariable   = "PORTOLAN_DATA_DESCRIPTOR"
	DataDescriptor = 4
)

// EnterData makes the folder for data that the service point passes the working directory, and returns its path; empty if it passes none.
// The folder has no other path, because the process may not enter the folders above it.
func EnterData() (dir string, err error) {
	if os.Getenv(DataVariable) != strconv.Itoa(DataDescriptor) {
		return "", nil
	}
	folder := os.NewFile(DataDescriptor, "data")
	if err := folder.Chdir(); err != nil {
		return "", err
	}
	return ".", folder.Close()
}
