# Take Knapper away again on Windows: .\uninstall.ps1 [-Yes] [-DryRun]; notes, journal and settings stay.
# Where Windows refuses to run scripts: powershell -ExecutionPolicy Bypass -File uninstall.ps1
# It was written beside uninstall.sh, is parsed by a test, and was never run on Windows.
[CmdletBinding(PositionalBinding = $false)]
param([switch]$Yes, [switch]$DryRun)
$ErrorActionPreference = "Stop"
$PSNativeCommandUseErrorActionPreference = $false # exit codes are looked at here
$env:PYTHONUTF8 = "1" # names of vaults come over a pipe, in letters of any script
try { [Console]::OutputEncoding = [System.Text.Encoding]::UTF8 } catch { Write-Verbose "there is no console" }

function Say([string]$Text) { Write-Host "uninstall: $Text" }
function Invoke-Step([string]$Program, [string[]]$Arguments) { # carry it out, or only show it; what fails is told
    if ($DryRun) { Say "would run: $Program $($Arguments -join ' ')"; return }
    & $Program @Arguments
    if ($LASTEXITCODE -ne 0) { Say "$Program $($Arguments -join ' ') ended with code $LASTEXITCODE; see above" }
}
function Read-Program([string]$Program, [string[]]$Arguments) { # what it prints; nothing where it fails or isn't there
    # Windows PowerShell takes a line on a redirected error stream for an error, which would end this script.
    $ErrorActionPreference = "Continue"
    try { $printed = & $Program @Arguments 2>$null } catch { return }
    if ($LASTEXITCODE -eq 0) { return $printed }
}

$folder = Join-Path $env:LOCALAPPDATA "Programs\knapper"
$knap = Join-Path $folder "Scripts\knap.exe"
$command = Get-Command knap -ErrorAction SilentlyContinue
if ($command) { $knap = $command.Source }
$file = ""
$state = ""
if (Test-Path -LiteralPath $knap) {
    $file = Read-Program $knap @("config", "path")
    $vaults = @()
    try {
        $settings = (Read-Program $knap @("config", "--json") | Out-String | ConvertFrom-Json).settings
        $state = $settings.state_dir.value
        $names = @($settings.PSObject.Properties | ForEach-Object { $_.Name })
        $vaults = @($names | ForEach-Object { if ($_ -match "^vaults\.(.*)\.path$") { $Matches[1] } })
    } catch { Say "the settings can't be read: take the plugin out of your vaults by hand, from .obsidian\plugins\knapper" }
    Invoke-Step $knap @("service", "uninstall")
    if (-not $DryRun -and (Read-Program $knap @("service", "status"))) {
        Say "a server that isn't the service still runs: end it where it was started, by Ctrl-C"
    }
    foreach ($vault in $vaults) { Invoke-Step $knap @("plugin", "uninstall", "--vault", $vault) }
    Invoke-Step $knap @("mcp", "uninstall", "--all")
    Invoke-Step $knap @("completion", "uninstall", "powershell")
}
if (-not $Yes -and -not $DryRun -and (Read-Host "uninstall: Remove the program itself? [y/N]") -notmatch "^(y|yes)$") {
    Say "the program stays; .\uninstall.ps1 -Yes removes it"
    exit 0
}
$removed = $false
if (@(Read-Program "uv" @("tool", "list")) -match "^knapper ") {
    Invoke-Step "uv" @("tool", "uninstall", "knapper")
    $removed = $true
}
if (@(Read-Program "pipx" @("list", "--short")) -match "^knapper ") {
    Invoke-Step "pipx" @("uninstall", "knapper")
    $removed = $true
}
if (Test-Path -LiteralPath $folder) {
    if ($DryRun) { Say "would remove $folder" } else { Remove-Item -LiteralPath $folder -Recurse -Force; Say "removed $folder" }
    $removed = $true
}
if (-not $removed) { Say "no installation was found" }
Say "what stays: your notes; the settings in $file, and prompts beside them; the index and the journal in $state"
Say "in a vault's .obsidian stay Obsidian's list of plugins and the plugin's settings (data.json)"
Say "beside the settings of MCP clients stay copies of how they were"
exit 0
