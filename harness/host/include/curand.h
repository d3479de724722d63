// Not there on the host executor.
#pragma once

#error \
    "curand is not there on the host executor: draw random numbers on the host, or write the generator out"
