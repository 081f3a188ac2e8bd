"""One harvest of the benchmark's source by dlt: rest_api into Postgres. Prints the seconds that pipeline.run took."""

import json
import sys
import tempfile
import time

import dlt
from dlt.sources.rest_api import rest_api_source


def main() -> None:
    given = json.loads(sys.argv[1])
    source = rest_api_source(
        {
            "client": {"base_url": given["baseUrl"]},
            "resources": [
                {
                    "name": "works",
                    "endpoint": {
                        "path": "works",
                        "params": {"rows": given["pageSize"], "cursor": "*"},
                        "data_selector": "message.items",
                        "paginator": {
                            "type": "cursor",
                            "cursor_path": "message.next-cursor",
                            "cursor_param": "cursor",
                            "stop_after_empty_page": True,
                        },
                    },
                }
            ],
        }
    )
    # A record stays one row with its lists as JSON, as with Millrace; otherwise dlt writes a table for each list in it.
    source.max_table_nesting = 0
    with tempfile.TemporaryDirectory() as folder:
        pipeline = dlt.pipeline(
            pipeline_name="bench",
            pipelines_dir=folder,
            destination=dlt.destinations.postgres(given["postgres"]),
            dataset_name=given["dataset"],
        )
        started = time.perf_counter()
        pipeline.run(source, **({"loader_file_format": "csv"} if given["tuned"] else {}))
        seconds = time.perf_counter() - started
    with pipeline.sql_client() as client:
        rows = client.execute_sql(f'select count(*) from "{given["dataset"]}"."works"')[0][0]
        client.drop_dataset()
    print(json.dumps({"seconds": seconds, "rows": rows}))


if __name__ == "__main__":
    main()
