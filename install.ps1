# Install Knapper from this folder on Windows, and set it up: .\install.ps1 [-DryRun] [OPTIONS OF knap setup]
# PowerShell 5.1 or newer. It was written beside install.sh, and never run on Windows.
param([switch]$DryRun, [Parameter(ValueFromRemainingArguments = $true)][string[]]$SetupOptions)
$ErrorActionPreference = "Stop"
Set-Location -LiteralPath $PSScriptRoot

function Say([string]$Text) { Write-Host "install: $Text" }
function Invoke-Step([string]$Program, [string[]]$Arguments) {
    if ($DryRun) { Say "would run: $Program $($Arguments -join ' ')"; return }
    & $Program @Arguments
    if ($LASTEXITCODE -ne 0) { throw "$Program ended with code $LASTEXITCODE" }
}
function Find-Python {
    $check = "import os, sys; assert sys.version_info >= (3, 11); print(os.path.realpath(sys.executable))"
    $candidates = @(@("py", "-3.13"), @("py", "-3.12"), @("py", "-3.14"), @("py", "-3.11"), @("python"), @("python3"))
    foreach ($candidate in $candidates) {
        if (-not (Get-Command $candidate[0] -ErrorAction SilentlyContinue)) { continue }
        $options = @($candidate | Select-Object -Skip 1)
        $found = & $candidate[0] @options -c $check 2>$null
        if ($LASTEXITCODE -eq 0 -and $found) { return $found }
    }
    throw "there is no Python 3.11 or newer here; install one from python.org or the Microsoft Store, then run this again"
}

$python = Find-Python
Say "Python: $python"
$home_ = Join-Path $env:LOCALAPPDATA "Programs\knapper"
$knap = Join-Path $home_ "Scripts\knap.exe"
function Get-Wanted($earlier) { # this folder, with the extras of an earlier installation
    $extras = if (Test-Path -LiteralPath $earlier) { & $earlier -m knapper.extras 2>$null }
    if ($extras) { return ".[$extras]" }
    return "."
}
if (Get-Command uv -ErrorAction SilentlyContinue) {
    Invoke-Step "uv" @("tool", "install", "--force", "--python", $python, (Get-Wanted (Join-Path (& uv tool dir) "knapper\Scripts\python.exe")))
    $knap = Join-Path (& uv tool dir --bin) "knap.exe"
} elseif (Get-Command pipx -ErrorAction SilentlyContinue) {
    Invoke-Step "pipx" @("install", "--force", "--python", $python, (Get-Wanted (Join-Path (& pipx environment --value PIPX_LOCAL_VENVS) "knapper\Scripts\python.exe")))
    $knap = Join-Path (& pipx environment --value PIPX_BIN_DIR) "knap.exe"
} else {
    Say "installing into $home_"
    if (-not (Test-Path -LiteralPath (Join-Path $home_ "Scripts\python.exe"))) { Invoke-Step $python @("-m", "venv", $home_) }
    Invoke-Step (Join-Path $home_ "Scripts\python.exe") @("-m", "pip", "install", "--quiet", "--upgrade", ".")
}
Say "the command: $knap"
Invoke-Step $knap (@("setup") + @($SetupOptions | Where-Object { $_ }))
