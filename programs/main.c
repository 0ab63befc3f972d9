#include <stdio.h>

#include "fxtap/status.h"

int main(void)
{
    printf("fxtap %s\n", fxtap_version());
    return 0;
}
