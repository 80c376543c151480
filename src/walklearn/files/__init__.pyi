from .formats import read_table as read_table
from .rows import Rows as Rows
from .rows import read_rows as read_rows
from .rows import rows_of as rows_of
from .schema import Schema as Schema
from .table import DataError as DataError
from .table import Table as Table
