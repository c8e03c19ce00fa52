/* A driver without most of its functions. */
int cuDriverGetVersion(int *version);
int cuInit(unsigned flags);
int cuGetErrorName(int result, const char **name);
int cuGetErrorString(int result, const char **text);

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuGetErrorName(int result, const char **name)
{
    *name = "";
    return result;
}

int cuGetErrorString(int result, const char **text)
{
    *text = "";
    return result;
}
