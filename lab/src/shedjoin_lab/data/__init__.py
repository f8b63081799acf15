"""Real streams, read from a folder outside the project (`--data`, or the environment variable SHEDJOIN_DATA)."""

from shedjoin_lab.data.flights import flight_connections, flights_from_hubs
from shedjoin_lab.data.folder import data_folder
from shedjoin_lab.data.network import network_logs, network_names
from shedjoin_lab.data.news import news_keyed, news_sets
from shedjoin_lab.data.ships import ships
from shedjoin_lab.data.tower import tower_temperatures

__all__ = [
    "data_folder",
    "flight_connections",
    "flights_from_hubs",
    "network_logs",
    "network_names",
    "news_keyed",
    "news_sets",
    "ships",
    "tower_temperatures",
]
