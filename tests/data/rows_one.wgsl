// An id reads one row.

alias Rows = u32;
