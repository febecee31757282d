# Install Knapper from this folder on Windows, and set it up:
#   .\install.ps1 [-DryRun] [-Venv] [-Wheel FILE] [OPTIONS OF knap setup, such as --yes --vault C:\Notes]
# Where Windows refuses to run scripts: powershell -ExecutionPolicy Bypass -File install.ps1
# PowerShell 5.1 or newer. It was written beside install.sh, is parsed by a test, and was never run on Windows.
[CmdletBinding(PositionalBinding = $false)]
param(
    [switch]$DryRun,
    [switch]$Venv,
    [string]$Wheel = ".",
    [Parameter(ValueFromRemainingArguments = $true)][string[]]$SetupOptions = @()
)
$ErrorActionPreference = "Stop"
$PSNativeCommandUseErrorActionPreference = $false # exit codes are looked at here

function Say([string]$Text) { Write-Host "install: $Text" }
function Invoke-Step([string]$Program, [string[]]$Arguments) { # carry it out, or only show it
    if ($DryRun) { Say "would run: $Program $($Arguments -join ' ')"; return }
    & $Program @Arguments
    if ($LASTEXITCODE -ne 0) { throw "$Program ended with code $LASTEXITCODE" }
}
function Read-Program([string]$Program, [string[]]$Arguments) { # what it prints; nothing where it fails or isn't there
    # Windows PowerShell takes a line on a redirected error stream for an error, which would end this script.
    $ErrorActionPreference = "Continue"
    try { $printed = & $Program @Arguments 2>$null } catch { return }
    if ($LASTEXITCODE -eq 0) { return $printed }
}
function Find-Python { # the real interpreter, not an alias or a shim, which a task at logon couldn't start
    $check = "import os, sys; assert sys.version_info >= (3, 11); print(os.path.realpath(sys.executable))"
    $candidates = @(@("py", "-3.13"), @("py", "-3.14"), @("py", "-3.12"), @("py", "-3.11"), @("py", "-3.15"), @("python"), @("python3"))
    if ($env:PYTHON) { $candidates = @(, @($env:PYTHON)) }
    foreach ($candidate in $candidates) {
        $found = Read-Program $candidate[0] (@($candidate | Select-Object -Skip 1) + @("-c", $check))
        if ($found) { return $found }
    }
    throw "there is no Python 3.11 or newer here; install one from python.org or the Microsoft Store, or name it in the variable PYTHON, then run this again"
}
function Get-Wanted([string]$Earlier) { # this folder or the wheel, with the extras of an earlier installation
    $extras = Read-Program $Earlier @("-m", "knapper.extras")
    if ($extras) { return "${Wheel}[$extras]" }
    return $Wheel
}

function Assert-Known([string[]]$Given) { # before anything is done
    $flags = @("--service", "--no-service", "--no-clients", "--plugin", "--no-plugin", "--e5", "--json", "--no-color", "--no-server",
        "-y", "--yes", "-q", "--quiet", "-yq", "-qy", "-h", "--help")
    $valued = @("--model", "--client", "--port", "--interval", "--state-dir", "--vault", "--config", "--env-file", "-v")
    for ($at = 0; $at -lt $Given.Count; $at++) {
        $name, $value = $Given[$at] -split "=", 2
        if ($flags -ccontains $Given[$at]) { continue }
        if ($valued -cnotcontains $name) { throw "'$($Given[$at])' isn't known; nothing was installed; the first lines of install.ps1 say what there is" }
        if ($null -eq $value) { $at++ }
        if ($at -ge $Given.Count) { throw "$name needs a value; nothing was installed" }
        if (@("--vault", "-v") -cnotcontains $name) { continue }
        if ($null -eq $value) { $value = $Given[$at] } # one without a separator may be the name of a configured vault
        if ($value -match "^[^~].*[\\/]" -and -not (Test-Path -LiteralPath $value -PathType Container)) {
            throw "there is no folder $value; nothing was installed"
        }
    }
}

if ($Wheel -ne ".") { $Wheel = (Resolve-Path -LiteralPath $Wheel).Path }
$setup = @("setup") + @($SetupOptions | Where-Object { $_ })
Assert-Known @($setup | Select-Object -Skip 1)
$code = 0
Push-Location -LiteralPath $PSScriptRoot
try {
    Say "system: Windows"
    $python = Find-Python
    Say "Python: $python"
    if (-not $Venv -and (Get-Command uv -ErrorAction SilentlyContinue)) {
        Say "installing by uv"
        $earlier = Join-Path (& uv tool dir) "knapper\Scripts\python.exe"
        Invoke-Step "uv" @("tool", "install", "--force", "--python", $python, (Get-Wanted $earlier))
        $knap = Join-Path (& uv tool dir --bin) "knap.exe"
    } elseif (-not $Venv -and (Get-Command pipx -ErrorAction SilentlyContinue)) {
        Say "installing by pipx"
        $earlier = Join-Path (& pipx environment --value PIPX_LOCAL_VENVS) "knapper\Scripts\python.exe"
        Invoke-Step "pipx" @("install", "--force", "--python", $python, (Get-Wanted $earlier))
        $knap = Join-Path (& pipx environment --value PIPX_BIN_DIR) "knap.exe"
    } else {
        $folder = Join-Path $env:LOCALAPPDATA "Programs\knapper"
        $own = Join-Path $folder "Scripts\python.exe"
        $knap = Join-Path $folder "Scripts\knap.exe"
        $version = @("-c", "import sys; print(*sys.version_info[:2])")
        if ((Test-Path -LiteralPath $own) -and ((Read-Program $own $version) -ne (Read-Program $python $version))) {
            Say "making $folder anew: it has another Python"
            if (-not $DryRun) { Remove-Item -LiteralPath $folder -Recurse -Force }
        }
        Say "installing into $folder"
        if (-not (Test-Path -LiteralPath $own)) { Invoke-Step $python @("-m", "venv", $folder) }
        Invoke-Step $own @("-m", "pip", "install", "--quiet", "--upgrade", $Wheel)
    }
    Say "the command: $knap; .\uninstall.ps1 takes it away again"
    if (($env:PATH -split ";") -notcontains (Split-Path -Parent $knap)) {
        Say "put $(Split-Path -Parent $knap) on your PATH, to call it as knap"
    }
} finally { Pop-Location }
if ($DryRun) { Say "would run: $knap $($setup -join ' ')" } else { & $knap @setup; $code = $LASTEXITCODE }
exit $code
