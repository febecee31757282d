"""The index of a team: published to PostgreSQL by the machine with the files, searched by readers without any."""
