"""The only input and output of the package: hosts, links and the processes of this machine."""
