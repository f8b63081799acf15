"""A page that shows running queries in the browser: a follower of metrics files, and a small web server."""
