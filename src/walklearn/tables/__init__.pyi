from .formats import read_table as read_table
from .schema import Schema as Schema
from .table import DataError as DataError
from .table import Table as Table
from .training_rows import Rows as Rows
from .training_rows import read_rows as read_rows
from .training_rows import rows_of as rows_of
