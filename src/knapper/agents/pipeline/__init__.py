"""A pipeline of agents for one task: notes are scouted, the web is searched, and the task is carried out."""
