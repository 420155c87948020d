// int8
