"""Answer messages over HTTP: the routes of chats and of the sessions that keep them."""
