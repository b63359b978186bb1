"""Exports a run to a file, or to a folder of Parquet files, in the format that its name suggests."""

from __future__ import annotations

from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.outputs.exports.chrome_trace import chrome_trace
from batkube.outputs.exports.formats import ExportFormat
from batkube.outputs.exports.perfetto import perfetto_packets
from batkube.outputs.exports.run_tables import run_tables
from batkube.outputs.exports.timeline.builder import timeline_of
from batkube.outputs.files.derived_files import open_derived_file
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.parquet import preload_parquet, write_parquet_file
from batkube.outputs.playback.playback import Playback
from batkube.version import __version__


def save_export(run: str | Path, path: Path, export_format: ExportFormat, *, force: bool = False) -> None:
    """Write the run in a folder to `path`. The same run gives the same bytes. Raises InputError."""
    if export_format is ExportFormat.PARQUET:
        _save_tables(run, path, force=force)
        return
    if path.is_file() and not force:
        raise InputError(path, problem="exists already", remedy="choose another name, or add --force to replace it")
    playback = Playback.read(run)
    with open_derived_file(path) as file:
        if export_format is ExportFormat.PERFETTO:
            file.writelines(perfetto_packets(timeline_of(playback)))
        else:
            file.writelines(chrome_trace(timeline_of(playback), playback.end, _description(playback)))


def _save_tables(run: str | Path, path: Path, *, force: bool) -> None:
    """Write a Parquet file per table into a folder. --force replaces only the folder of an earlier export."""
    if not preload_parquet():
        raise InputError("parquet", problem="needs pyarrow", remedy="pip install 'batkube[parquet]'")
    folder = OutputFolder(path, force=force)
    playback = Playback.read(run)
    with folder.writing():
        for table in run_tables(playback):
            write_parquet_file(folder.file(f"{table.name}.parquet"), table.columns, table.float_columns)
        folder.seal({"batkube": __version__, "export": _description(playback)})


def _description(run: Playback) -> dict[str, object]:
    """Return what identifies the exported run, whatever its folder."""
    manifest = run.files.manifest
    return {
        "batkube": str(manifest.get("batkube", "")),
        "scheduler": run.files.scheduler,
        "seed": manifest.get("seed"),
        "digest": str(manifest.get("digest", "")),
    }
