// An id reads several rows.

override ROWS: u32 = 2u;

alias Rows = vec4<u32>;
